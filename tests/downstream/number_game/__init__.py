"""A program that uses focus as its users do: with a policy, a parser, a codec and a critic of its own.

It guesses numbers. Only the documented import paths of `focus` appear here, and no model is downloaded.
"""
