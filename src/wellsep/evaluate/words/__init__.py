"""Sentences about a judgement, from its facts."""
