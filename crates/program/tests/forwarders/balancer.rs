//! Balancer.

use super::bench::InstalledForwarder;
use super::frames::*;
use longwire_program::Verdict;

fn over(links: u8, seed: u8) -> InstalledForwarder {
    InstalledForwarder::with("balancer", &[links, 0, 0, 0, seed, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
}

/// Over four links.
pub fn ready() -> InstalledForwarder {
    over(4, 1)
}

/// The link chosen for a packet, which its mark repeats.
fn link(balancer: &mut InstalledForwarder, sent: &[u8]) -> u32 {
    let ran = balancer.send(sent);
    assert_eq!((ran.verdict, &*ran.packet), (Verdict::Pass, sent));
    let link = ran.effects.link.unwrap();
    assert_eq!(ran.effects.mark, Some(link + 1));
    link
}

#[test]
fn flows_keep_their_link_and_all_links_have_flows() {
    for ip in [|| v4(CLIENT, SERVER), v6] {
        let mut balancer = ready();
        let mut flows = [0; 4];
        for port in 0..400 {
            let first = link(&mut balancer, &udp(ip(), [port, 53], b"one"));
            assert_eq!(link(&mut balancer, &udp(ip(), [port, 53], b"another")), first);
            flows[first as usize] += 1;
        }
        // 100 each, if equally likely: standard deviation 8.7, and five of these.
        assert!(flows.iter().all(|flows| (57..=143).contains(flows)), "{flows:?}");
        assert_eq!(balancer.double(8), 800);
    }
}

#[test]
fn other_seeds_spread_otherwise() {
    let (mut one, mut other) = (over(4, 1), over(4, 2));
    let differ = (0..100).filter(|port| {
        let sent = udp(v4(CLIENT, SERVER), [*port, 53], b"data");
        link(&mut one, &sent) != link(&mut other, &sent)
    });
    // 75 of 100, deviation 4.3.
    assert!((53..=97).contains(&differ.count()));
}

#[test]
fn what_has_no_ports_goes_by_its_addresses_and_what_is_not_ip_as_it_would() {
    let mut balancer = ready();
    let sent = udp(v4(CLIENT, SERVER), [1, 2], b"data");
    let later = |ports: &[u8]| patched(&patched(&sent, 20, &[0, 9]), 34, ports);
    assert_eq!(link(&mut balancer, &later(&[0, 1, 0, 2])), link(&mut balancer, &later(&[7, 7, 7, 7])));
    for untouched in [patched(&sent, 12, &[8, 6]), sent[..30].to_vec()] {
        assert_eq!(balancer.send(&untouched).effects.link, None);
    }
    let off = over(0, 1).send(&sent);
    assert_eq!((off.effects.link, off.effects.mark), (None, None));
}
