"""Films of scenes, as a hand would film them, with their truth: to try `airworthy capture video` on."""
