"""What people look at: reports, frames, and the page on which they label."""
