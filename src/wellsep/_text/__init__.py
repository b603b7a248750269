"""Text that users read: sentences, small HTML, colours, the glossary."""
