"""How far two blocks of rows lie apart."""
