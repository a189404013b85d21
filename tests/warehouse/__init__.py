"""The Strobe family under random schedules."""
