"""From request records to the numbers of DESIGN section 3."""
