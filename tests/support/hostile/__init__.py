"""Malicious kernels, HLO and texts, each with the verdicts that are right, in the categories 1 to 25.

    CASES: {category: [(name, source or request, verdicts)]}
"""
