"""Documents: the generated big5 corpus, files of documents, and bulk bodies."""
