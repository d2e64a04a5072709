"""Makes variants whose truth is known from plans that are taken as correct."""
