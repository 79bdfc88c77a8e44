"""Backend `replay`: what a board elsewhere recorded, judged here."""
