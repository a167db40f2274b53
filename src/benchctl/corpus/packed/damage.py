"""What is wrong with a file of documents, told by whoever decodes it."""


class DamageError(Exception):
    """A file is damaged or incomplete; the text says how, without naming the file."""
