//! Stereoscopic video: the `vexu` box (Apple, "ISO Base Media File Format and Apple HEVC Stereo
//! Video") and multilayer HEVC (ISO/IEC 14496-15, 9).

use super::child_boxes::{ChildBox, ChildBoxes};

/// Bits of `stri` that announce a left and a right view.
const BOTH_EYES: u8 = 0b11;

/// Returns whether a sample entry with these child boxes has a view for each eye.
///
/// Without a `vexu` box, an entry with a second HEVC layer (`lhvC`) has a view for each eye.
pub(super) fn is_stereoscopic(children: &ChildBoxes<'_>) -> bool {
    match find_child(children, b"vexu") {
        Some(vexu) => has_both_eyes(vexu.body).unwrap_or(false),
        None => find_child(children, b"hvcC").is_some() && find_child(children, b"lhvC").is_some(),
    }
}

fn has_both_eyes(vexu: &[u8]) -> Option<bool> {
    let vexu = ChildBoxes::parse(vexu).ok()?;
    let eyes = ChildBoxes::parse(find_child(&vexu, b"eyes")?.body).ok()?;
    // The body starts with four bytes of version and flags.
    let bits = *find_child(&eyes, b"stri")?.body.get(4)?;
    Some(bits & BOTH_EYES == BOTH_EYES)
}

fn find_child<'a>(children: &ChildBoxes<'a>, name: &[u8; 4]) -> Option<ChildBox<'a>> {
    children.0.iter().find(|child| child.name == *name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::write_box;

    fn is_stereo_entry(boxes: &[(&[u8; 4], Vec<u8>)]) -> bool {
        let mut bytes = Vec::new();
        for (name, body) in boxes {
            write_box(&mut bytes, name, |out| out.extend_from_slice(body));
        }
        is_stereoscopic(&ChildBoxes::parse(&bytes).unwrap())
    }

    /// Builds the body of a `vexu` box in which `bits` is the last byte of the `stri` box.
    fn build_vexu(bits: u8) -> Vec<u8> {
        let mut body = Vec::new();
        write_box(&mut body, b"eyes", |out| {
            write_box(out, b"stri", |out| out.extend([0, 0, 0, 0, bits]));
        });
        body
    }

    #[test]
    fn mv_hevc_is_stereo_by_its_boxes() {
        let (hvcc, lhvc) = ((b"hvcC", vec![1]), (b"lhvC", vec![1]));
        assert!(!is_stereo_entry(std::slice::from_ref(&hvcc)));
        assert!(is_stereo_entry(&[hvcc.clone(), lhvc.clone()]));
        for (bits, stereo) in [(3, true), (7, true), (1, false), (2, false)] {
            let vexu = (b"vexu", build_vexu(bits));
            assert_eq!(is_stereo_entry(&[hvcc.clone(), lhvc.clone(), vexu]), stereo);
        }
        // If the vexu box is malformed, the entry does not count as stereo.
        assert!(!is_stereo_entry(&[hvcc, lhvc, (b"vexu", vec![0; 3])]));
    }
}
