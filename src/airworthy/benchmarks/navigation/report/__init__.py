"""The navigation benchmark's page: text, tables and figures from its stored blocks."""
