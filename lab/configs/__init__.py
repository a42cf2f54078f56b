"""Reading, checking and editing the config pair and experiment files."""
