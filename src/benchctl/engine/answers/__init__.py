"""What engines answer, compared with each other and with the truth."""
