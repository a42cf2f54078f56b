"""The inference tuning lab: everything behind the pages, without Streamlit."""
