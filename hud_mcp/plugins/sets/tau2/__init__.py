"""tau2-bench: conversations with users, over databases, tools and policies of businesses."""
