"""Detection over nights: screens, confirmation, the canary, change points; pure, no input or output."""
