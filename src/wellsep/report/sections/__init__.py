"""Parts of a page: tables, objects, the scatter, clusters."""
