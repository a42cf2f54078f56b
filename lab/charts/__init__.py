"""From stored values to Plotly figures."""
