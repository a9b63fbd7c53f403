"""Early answers: the replay of two files, from its options to its figures."""
