"""The big5 log corpus: made from a seed, kept in compressed files, framed for bulk requests."""
