"""The NumPy operations of the front end: one table, and what is proved of each.

    table      one line per operation: its calls and its forms; a new operation is a new line
    draw       how calls are drawn; special: generators for single operations
    sources    the kernels that calls and forms become, and their inputs
"""
