"""The README's commands on a new Debian, in a folder of this machine."""
