//! Wavelet dropper.

use super::bench::InstalledForwarder;
use super::frames::*;
use longwire_program::Verdict;

/// Layers from 2 on are dropped.
pub fn ready() -> InstalledForwarder {
    InstalledForwarder::with("wavelet", &[2, 0, 0, 0, 0, 0, 0, 0])
}

#[test]
fn high_layers_are_dropped() {
    let mut dropper = ready();
    for (layer, verdict, forwarded) in [
        (0, Verdict::Pass, 1),
        (1, Verdict::Pass, 2),
        (2, Verdict::Drop(Some(0)), 2),
        (255, Verdict::Drop(Some(0)), 2),
        (1, Verdict::Pass, 3),
    ] {
        let sent = udp(v4(CLIENT, SERVER), [5004, 5004], &[layer, 9, 9]);
        let ran = dropper.send(&sent);
        assert_eq!((ran.verdict, &ran.packet, dropper.word(4)), (verdict, &sent, forwarded), "{layer}");
    }
    let sent = udp(v6(), [5004, 5004], &[2]);
    assert_eq!(dropper.send(&sent).verdict, Verdict::Drop(Some(0)));
    // With the limit at 3, the second layer passes; at 0, all do.
    dropper.set(&[3, 0, 0, 0, 3, 0, 0, 0]);
    assert_eq!(dropper.send(&sent).verdict, Verdict::Pass);
    dropper.set(&[0; 8]);
    assert_eq!(dropper.send(&udp(v6(), [5004, 5004], &[255])).verdict, Verdict::Pass);
}

#[test]
fn what_has_no_layer_passes() {
    for sent in [udp(v4(CLIENT, SERVER), [5004, 5004], &[]), tcp(v4(CLIENT, SERVER), [5004, 5004], ack)] {
        let mut dropper = ready();
        assert_eq!((dropper.send(&sent).verdict, dropper.word(4)), (Verdict::Pass, 0));
    }
}
