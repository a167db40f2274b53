"""Reports of experiments: expectations first, then every table with published and measured figures."""
