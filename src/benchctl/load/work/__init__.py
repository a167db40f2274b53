"""Operations as work: what the clients of a task send, and how answers are judged."""
