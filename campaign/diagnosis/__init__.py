"""Where the step's time goes and what can be won, from profiles: the detective half of the product.

`found` has the records of an answer. Profiles are evidence of where and why, never of how fast: nothing in here reaches
an effect or a verdict.
"""
