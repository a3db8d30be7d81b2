"""The one writer: tables written aside, counted, then put in place, or nothing changes."""
