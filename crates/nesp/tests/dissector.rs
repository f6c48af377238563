//! `docs/nesp.lua` in tshark, on the specification's test vectors. Skipped with a message without tshark.

mod page;

use longwire_nesp::{GROUP_ADDRESS, MessageEnds, wrap};
use std::process::Command;

const HOST: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// A capture of these frames, a second apart (pcap, microseconds, Ethernet).
fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(0xa1b2_c3d4u32.to_le_bytes());
    bytes.extend([2, 0, 4, 0]);
    for word in [0u32, 0, 65_535, 1] {
        bytes.extend(word.to_le_bytes());
    }
    for (second, frame) in (0u32..).zip(frames) {
        for word in [second, 0, frame.len() as u32, frame.len() as u32] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(frame);
    }
    bytes
}

/// Output of tshark for fields of each frame.
fn said(file: &std::path::Path, fields: &[&str]) -> Option<Vec<String>> {
    let lua = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/nesp.lua");
    let mut command = Command::new("tshark");
    command.args([
        "-r",
        file.to_str().unwrap(),
        "-X",
        &format!("lua_script:{lua}"),
        "-T",
        "fields",
        "-E",
        "separator=|",
    ]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().ok()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !errors.to_lowercase().contains("lua:"), "{errors}");
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

#[test]
fn tshark_shows_the_vectors() {
    let page = page::vectors();
    let names = [
        "hello",
        "welcome",
        "get",
        "get-answer",
        "set",
        "set-answer",
        "wrong",
        "wrong-answer",
        "router",
        "program",
        "page",
        "page-answer",
    ];
    let mut frames: Vec<_> =
        names.iter().map(|name| wrap(&MessageEnds::ethernet(HOST, GROUP_ADDRESS), &page[name])).collect();
    frames.extend(["vlan", "udp", "udp6"].map(|name| page[name].clone()));
    // Truncated within an item, and of another version.
    let mut cut = wrap(&MessageEnds::ethernet(HOST, GROUP_ADDRESS), &page["set"]);
    cut[14 + 37..14 + 39].copy_from_slice(&[1, 0]);
    frames.push(cut);
    let file = std::env::temp_dir().join(format!("longwire-nesp-{}.pcap", std::process::id()));
    std::fs::write(&file, pcap(&frames)).unwrap();
    let rows = said(
        &file,
        &[
            "nesp.kind",
            "nesp.session",
            "nesp.sequence",
            "nesp.object",
            "nesp.setting",
            "nesp.error",
            "nesp.next",
            "nesp.malformed",
        ],
    );
    std::fs::remove_file(&file).unwrap();
    let Some(rows) = rows else { return println!("skipped: there is no tshark on this machine") };
    assert_eq!(
        rows,
        [
            "1|0|0|||||",
            "2|1|0|||||",
            "3|1|1|link up||||",
            "4|1|1|link up|rate=10 Mbit/s|||",
            "3|1|2|link up|rate=2 Mbit/s,delay=30 ms|||",
            "4|1|2|||||",
            "3|1|3|link up|rate=fast|||",
            "4|1|3|||bad value: rate: \"fast\" is no rate||",
            "3|1|4|router west,flow west/voice|route.10.8.0.0/16=via 10.0.2.9,weight=4|||",
            "3|1|5|forwarder west/seen|program=syn-monitor,key.protocol=tcp|||",
            "3|1|6|router west|||0|",
            "4|1|6|router west|route.10.0.1.0/24=dev a||1|",
            "1|0|0|||||",
            "1|0|0|||||",
            "1|0|0|||||",
            "3|1|2|||||1",
        ]
    );
}
