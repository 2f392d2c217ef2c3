"""Kernels on strings and lists of tokens: texts, DNA, proteins, words, events."""
