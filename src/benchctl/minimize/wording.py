"""Questions and answers in words, for whoever watches."""

from benchctl.report.numbers import counted, duration, signed_percent
from benchctl.results.minimize.model import Decision


def title(decision: Decision, target: str) -> str:
    """A question as it is asked."""
    tasks = " > ".join((*decision.tasks, target))
    cut = ", counts cut" if decision.short else ""
    without = f", without {', '.join(decision.removed)}" if decision.removed else ""
    return f"question {decision.number}{cut}{without}: is it there in {tasks}?"


def outcome(decision: Decision) -> str:
    """A question as it was answered."""
    because = f" ({decision.reason})" if decision.reason else ""
    effect = ""
    if decision.effect_percent is not None:
        effect = f", {signed_percent(decision.effect_percent)} %"
    return (
        f"question {decision.number}: {decision.verdict}{because}{effect} after "
        f"{counted(len(decision.contender), 'pair')}, {duration(decision.seconds)}"
    )
