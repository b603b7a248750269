"""Files: arrays, JSON, records; read within limits, replaced whole."""
