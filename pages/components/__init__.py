"""Parts that all pages share: language, context, states and numbers as text."""
