//! ISO base media file format (ISO/IEC 14496-12): one box, one file, named by its four letters.
