"""Files of documents, decompressed in parallel and read from any line on."""
