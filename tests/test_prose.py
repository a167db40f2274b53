"""Docstrings and messages keep to the rules of prose that a machine can check."""

import inspect
import re

from source_texts import command_help, docstrings, messages, trees

PRONOUN = re.compile(
    "(It|Its|They|Their|Them|That|Those|These|This|What|How|Whether|Which|Who|Whose|Where|When|Why|All|Each|One|He"
    "|She|We|I|You|Your|Most|None|Some|Any|Both|Same|As|If|So|The same)[^a-z]"
)
RAISED = re.compile(r"^ {4}(?:\w+): (?!If )(.*)$", re.MULTILINE)
SECTION = re.compile(r"Raises:\n((?:    .*\n?|\n)*)")
FAULT = re.compile(
    r"(?<=[\d}]) %(?![a-zA-Z(0-9{%}]|$)"
    r"|\b(anew|meanwhile|so often|so many|in between|befall|befell|calm down|folders?|somebody|nobody|unlike"
    r"|of (?:its|their) own|goes on|go on|leave [^;,.]{0,60}\bout|stands for|per cent|as usual"
    r"|there (?:is|are) no|is no|(?:is|are) there|sa(?:y|ys|id) that)\b",
    re.IGNORECASE,
)

PRIVATE = re.compile(
    r"\b(?:(?:is|are|was|were|be) (?:held|known|carried|moved)|stands?|stood|asked|told|fared|says?|knows?"
    r"|wants?|the known|means? nothing|do(?:es)? not mix|put .{1,30} back|mend|cannot be had|passed over"
    r"|stays? as it is|all the same|gone again|see whether|makers|an engine's)\b",
    re.IGNORECASE,
)
"""Everyday words that only a reader of the source understands as they are meant."""
ALLOWED = {
    "the task is throttled, and its {} is what was asked for",
    "run {} was a trial (--test-mode): its values mean nothing",
}
"""Texts that may have them."""


def test_docstrings_begin_with_a_verb_or_a_noun():
    assert not [
        (name, text.lineno, str(text.value).splitlines()[0])
        for name, tree in trees().items()
        for text in docstrings(tree)
        if PRONOUN.match(f"{text.value} ")
    ]


def test_docstrings_say_when_errors_are_raised():
    assert not [
        (name, text.lineno, line)
        for name, tree in trees().items()
        for text in docstrings(tree)
        for section in SECTION.findall(inspect.cleandoc(str(text.value)) + "\n")
        for line in RAISED.findall(section)
    ]


def test_messages_are_free_of_the_guides_faults():
    assert not [
        (name, line, text)
        for name, tree in trees().items()
        for line, text in messages(tree)
        if " " in text and FAULT.search(text)
    ]


def test_texts_have_no_words_of_private_meaning():
    assert not [
        (name, line, text)
        for name, tree in trees().items()
        for line, text in (*messages(tree), *command_help(tree))
        if " " in text and PRIVATE.search(text) and text not in ALLOWED
    ]
