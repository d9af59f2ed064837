"""What is called how in a run's directory."""

CONSOLE = "console.log"
WORK = "work"
