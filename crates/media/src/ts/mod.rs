//! MPEG-2 transport streams and packed audio, from samples.
