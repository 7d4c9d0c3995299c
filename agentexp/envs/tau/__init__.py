"""Customer service of a shop, from τ²-bench or τ-bench: tools over a database, and a customer to talk to."""
