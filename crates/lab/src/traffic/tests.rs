//! Whole measurements over loopback, some through a relay that impairs the stream.

use super::bulk::{self, Bulk};
use super::request::{self, Requests, Transport};
use super::server::SessionOutcome;
use super::udp::{self, SendingRate, UdpStream};
use super::*;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Runs `client` against a server, which serves as many sessions as `client` makes; returns both sides'
/// outcomes.
fn with_server<T>(client: impl FnOnce(Receiver) -> T) -> (T, Vec<Session>) {
    let server = Server::bind(LOOPBACK).unwrap();
    let receiver = Receiver::at(server.address().unwrap());
    let stop = AtomicBool::new(false);
    let mut sessions = Vec::new();
    let result = thread::scope(|scope| {
        scope.spawn(|| server.serve(&stop, &mut |session| sessions.push(session)).unwrap());
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| client(receiver)));
        stop.store(true, Ordering::Relaxed);
        result
    });
    (result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)), sessions)
}

fn stream(count: u64) -> UdpStream {
    UdpStream {
        until: StopAfter::Count(count),
        payload: 100,
        ..UdpStream::new(SendingRate::PacketsPerSecond(10_000), Duration::from_secs(1))
    }
}

#[test]
fn udp_arrives_whole_on_loopback() {
    let (result, sessions) = with_server(|receiver| udp::send(&receiver, &stream(2000), &mut quiet).unwrap());
    let seen = &result.reception;
    assert_eq!((result.sent, seen.received, seen.unique, seen.lost), (2000, 2000, 2000, 0));
    assert_eq!((seen.duplicates, seen.reordered, seen.foreign, seen.receiver_drops), (0, 0, 0, 0));
    assert_eq!((seen.payload_bytes, seen.loss_runs.count), (200_000, 0));
    assert!(seen.shared_clock);
    let delay = seen.delay.unwrap();
    assert!(delay.count == 2000 && delay.min_ns > -1_000_000 && delay.p50_ns < 100_000_000, "{delay:?}");
    // 146 bytes at layer Ethernet; a sender that was held up catches up at twice its rate.
    let rate = result.sent_bits_per_second.unwrap();
    assert!(rate > 0.0 && rate < 146.0 * 8.0 * 10_000.0 * 2.5, "{rate}");
    let Ok(SessionOutcome::Udp(told)) = &sessions[0].outcome else { panic!("{sessions:?}") };
    assert_eq!((told.unique, told.span_ns), (seen.unique, seen.span_ns));
    let rows = result.rows();
    let loss = rows.iter().find(|row| row.name == "loss").unwrap();
    assert_eq!(loss.measured, Some(0.0.into()));
}

#[test]
fn a_record_is_kept_where_no_receiver_answers() {
    let path = std::env::temp_dir().join(format!("longwire-kept-{}.pcap", std::process::id()));
    std::fs::write(&path, "kept").unwrap();
    let nobody = Server::bind(LOOPBACK).unwrap().address().unwrap();
    let mut recording = Recording::create(&path).unwrap();
    let sent = udp::send_recorded(&Receiver::at(nobody), &stream(1), Some(&mut recording), &mut quiet);
    assert!(matches!(sent, Err(Error::System { .. })), "{sent:?}");
    drop(recording);
    assert_eq!(std::fs::read(&path).unwrap(), b"kept");
    std::fs::remove_file(path).unwrap();
}

/// A relay's action on each packet of a stream, by its number.
#[derive(Clone, Copy)]
enum Fate {
    Pass,
    Lose,
    Double,
    /// Passes after the next one.
    Swap,
}

/// Sends `count` packets through a relay that deals with them by `fate`.
fn through_relay(count: u64, fate: fn(u64) -> Fate) -> udp::UdpResult {
    with_server(|receiver| {
        // The relay learns the real port from the control connection, which it hands on line by line.
        let control = std::net::TcpListener::bind(LOOPBACK).unwrap();
        let data = UdpSocket::bind(LOOPBACK).unwrap();
        let relayed = Receiver {
            address: control.local_addr().unwrap(),
            data: Some(data.local_addr().unwrap()),
            patience: Duration::from_secs(30),
        };
        thread::scope(|scope| {
            scope.spawn(|| relay(&control, &data, receiver.address, count, fate));
            udp::send(&relayed, &stream(count), &mut quiet).unwrap()
        })
    })
    .0
}

fn relay(
    control: &std::net::TcpListener,
    data: &UdpSocket,
    server: SocketAddr,
    count: u64,
    fate: fn(u64) -> Fate,
) {
    let (sender, _) = control.accept().unwrap();
    let receiver = TcpStream::connect(server).unwrap();
    hand_on(&sender, &receiver);
    let to = promised(&hand_on(&receiver, &sender));
    let mut held: Option<Vec<u8>> = None;
    for _ in 0..count {
        let mut packet = vec![0; 100];
        data.recv(&mut packet).unwrap();
        let pass = |packet: &[u8]| assert_eq!(data.send_to(packet, to).unwrap(), packet.len());
        match fate(u64::from(header::Header::read(&packet).unwrap().sequence)) {
            Fate::Pass => pass(&packet),
            Fate::Lose => {}
            Fate::Double => [&packet; 2].into_iter().for_each(|packet| pass(packet)),
            Fate::Swap => {
                held = Some(packet);
                continue;
            }
        }
        held.take().iter().for_each(|packet| pass(packet));
    }
    hand_on(&sender, &receiver);
    hand_on(&receiver, &sender);
}

/// Hands on one line; the sides take turns, so that nothing behind it is read with it.
fn hand_on(from: &TcpStream, mut to: &TcpStream) -> String {
    let mut line = String::new();
    BufReader::new(from).read_line(&mut line).unwrap();
    to.write_all(line.as_bytes()).unwrap();
    line
}

/// Where a receiver's answer says that it listens.
fn promised(ready: &str) -> SocketAddr {
    let ready: serde_json::Value = serde_json::from_str(ready).unwrap();
    SocketAddr::new(LOOPBACK.ip(), u16::try_from(ready["ready"]["port"].as_u64().unwrap()).unwrap())
}

#[test]
fn lost_packets_are_counted() {
    // Of 1000: 10, 11 and 12 of each hundred, and the very last one.
    let result =
        through_relay(
            1000,
            |k| if (10..13).contains(&(k % 100)) || k == 999 { Fate::Lose } else { Fate::Pass },
        );
    let seen = result.reception;
    assert_eq!((seen.received, seen.lost, seen.duplicates, seen.reordered), (969, 31, 0, 0));
    assert_eq!(seen.loss_runs, LossRuns { count: 11, longest: 3 });
}

#[test]
fn duplicates_are_counted() {
    let result = through_relay(1000, |k| if k % 4 == 0 { Fate::Double } else { Fate::Pass });
    let seen = &result.reception;
    assert_eq!((seen.received, seen.unique, seen.duplicates), (1250, 1000, 250));
    assert_eq!((seen.lost, seen.reordered, seen.payload_bytes), (0, 0, 125_000));
}

#[test]
fn reordered_packets_are_counted() {
    let result = through_relay(1000, |k| if k % 10 == 3 { Fate::Swap } else { Fate::Pass });
    let seen = &result.reception;
    assert_eq!((seen.received, seen.reordered, seen.reordered_by_at_most), (1000, 100, 1));
    assert_eq!((seen.lost, seen.duplicates), (0, 0));
}

#[test]
fn everything_at_once_is_counted() {
    let result = through_relay(1000, |k| match k % 10 {
        1 => Fate::Lose,
        4 => Fate::Double,
        7 => Fate::Swap,
        _ => Fate::Pass,
    });
    let seen = &result.reception;
    assert_eq!((seen.received, seen.unique, seen.lost), (1000, 900, 100));
    assert_eq!((seen.duplicates, seen.reordered, seen.loss_runs.longest), (100, 100, 1));
}

#[test]
fn a_duration_ends_a_stream() {
    let time = Duration::from_millis(100);
    let (result, _) = with_server(|receiver| {
        udp::send(&receiver, &UdpStream::new(SendingRate::BitsPerSecond(8_000_000), time), &mut quiet)
            .unwrap()
    });
    // 1046 bytes at 8 Mbit/s: 95.6 packets fit, so 96 are due; fewer if the machine paused.
    assert!((1..=96).contains(&result.sent), "{}", result.sent);
    assert_eq!(result.reception.lost, 0);
}

#[test]
fn tcp_delivers_every_byte() {
    for streams in [1, 3] {
        let asked =
            Bulk { streams, congestion: Some("reno".into()), ..Bulk::new(StopAfter::Count(3_000_001)) };
        let (result, sessions) = with_server(|receiver| bulk::send(&receiver, &asked, &mut quiet).unwrap());
        assert_eq!((result.sent_bytes, result.reception.bytes), (3_000_001, 3_000_001));
        assert_eq!(result.reception.intervals.iter().sum::<u64>(), 3_000_001);
        assert_eq!(result.congestion, "reno");
        assert!(result.rtt.is_some() && result.min_rtt_ns.is_some());
        let Ok(SessionOutcome::Bulk(reported)) = &sessions[0].outcome else {
            panic!("{:?}", sessions[0].outcome)
        };
        assert_eq!(reported.intervals, result.reception.intervals);
    }
}

#[test]
fn tcp_ends_after_a_duration() {
    let asked = Bulk::new(StopAfter::duration(Duration::from_millis(200)));
    let (result, _) = with_server(|receiver| bulk::send(&receiver, &asked, &mut quiet).unwrap());
    assert!(result.reception.bytes > 0 && result.reception.bytes <= result.sent_bytes);
    assert!(result.reception.goodput_bits_per_second.unwrap() > 0.0);
    assert!(!result.congestion.is_empty());
}

#[test]
fn unknown_congestion_control_is_named() {
    let asked = Bulk { congestion: Some("vegetable".into()), ..Bulk::new(StopAfter::Count(1)) };
    let (error, sessions) = with_server(|receiver| {
        let error = bulk::send(&receiver, &asked, &mut quiet).unwrap_err().to_string();
        // The receiver does not wait for connections of a sender that has gone.
        udp::send(&receiver, &stream(5), &mut quiet).unwrap();
        error
    });
    assert!(error.contains("\"vegetable\"") && error.contains("tcp_allowed_congestion_control"), "{error}");
    let ended = sessions[0].outcome.as_ref().unwrap_err().to_string();
    assert!(ended.starts_with("the other side ended the connection before the "), "{ended}");
    assert!(!ended.contains("version") && sessions[1].outcome.is_ok(), "{ended}");
}

#[test]
fn requests_are_answered() {
    for transport in [Transport::Udp, Transport::Tcp] {
        for (outstanding, request, response) in [(1, 18, 18), (8, 100, 2000), (64, 60_000, 60_000)] {
            let mut asked = Requests::new(transport, StopAfter::Count(300));
            (asked.outstanding, asked.request, asked.response) = (outstanding, request, response);
            // Slow machines are not what is tested.
            asked.timeout_ns = 60_000_000_000;
            if transport == Transport::Udp && request > 2000 {
                // More than the receive buffer of a socket would hold.
                continue;
            }
            let (result, sessions) =
                with_server(|receiver| request::send(&receiver, &asked, &mut quiet).unwrap());
            assert_eq!((result.sent, result.completed, result.answered), (300, 300, 300), "{asked:?}");
            assert_eq!((result.lost, result.stray, result.latency.unwrap().count), (0, 0, 300));
            assert!(matches!(sessions[0].outcome, Ok(SessionOutcome::Requests(300))));
        }
    }
}

#[test]
fn unanswered_requests_are_given_up() {
    let deaf = UdpSocket::bind(LOOPBACK).unwrap();
    let mut asked = Requests::new(Transport::Udp, StopAfter::Count(10));
    (asked.outstanding, asked.timeout_ns) = (4, 1_000_000);
    let (result, _) = with_server(|mut receiver| {
        receiver.data = Some(deaf.local_addr().unwrap());
        request::send(&receiver, &asked, &mut quiet).unwrap()
    });
    assert_eq!((result.sent, result.lost, result.completed, result.answered), (10, 10, 0, 0));
    assert!(result.latency.is_none());
}

#[test]
fn a_server_serves_kinds_one_after_the_other() {
    let ((), sessions) = with_server(|receiver| {
        udp::send(&receiver, &stream(10), &mut quiet).unwrap();
        bulk::send(&receiver, &Bulk::new(StopAfter::Count(10)), &mut quiet).unwrap();
        request::send(&receiver, &Requests::new(Transport::Tcp, StopAfter::Count(10)), &mut quiet).unwrap();
        udp::send(&receiver, &stream(10), &mut quiet).unwrap();
    });
    assert_eq!(sessions.len(), 4);
    assert!(sessions.iter().all(|session| session.outcome.is_ok()));
}

/// What a server answers to these bytes, sent by a sender that says no more.
fn answer_to(receiver: Receiver, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(receiver.address).unwrap();
    stream.write_all(bytes).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    // A server that closes with bytes unread resets the connection, after its answer.
    let _ = BufReader::new(stream).read_line(&mut answer);
    answer
}

#[test]
fn hostile_senders_harm_themselves_only() {
    let hello = |test: &str| {
        format!("{{\"longwire\":1,\"clock\":{{\"boot_id\":\"\",\"time_namespace\":\"\"}},\"test\":{test}}}\n")
            .into_bytes()
    };
    let udp = |packets: &str, quiet: &str| {
        hello(&format!("{{\"udp\":{{\"packets\":{packets},\"layer\":\"ip\",\"quiet_ns\":{quiet}}}}}"))
    };
    let attacks = [
        (Vec::new(), "ended the connection before"),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "cannot be read"),
        (b"\n".to_vec(), "cannot be read"),
        (vec![0xff; 100], "ended the connection before"),
        (vec![b'['; 4096], "ended the connection before"),
        (vec![b'{'; 5000], "more than 4096 bytes"),
        (hello("{\"fax\":{}}"), "unknown variant"),
        (udp("0", "1"), "packets: 0"),
        (udp("18446744073709551615", "1"), "packets: 18446744073709551615"),
        (udp("-1", "1"), "cannot be read"),
        (udp("1e300", "1"), "cannot be read"),
        (udp("1", "18446744073709551615"), "quiet_ns"),
        (udp("1,\"x\":1", "1"), "unknown field"),
        (
            hello("{\"bulk\":{\"streams\":4000000000,\"interval_ns\":1000000,\"duration_ns\":null}}"),
            "streams",
        ),
        (hello("{\"bulk\":{\"streams\":1,\"interval_ns\":0,\"duration_ns\":null}}"), "interval"),
        (hello("{\"request\":{\"transport\":\"udp\",\"request\":0,\"response\":18}}"), "request: 0 bytes"),
        (hello("{\"request\":{\"transport\":\"tcp\",\"request\":18,\"response\":99999999999}}"), "response"),
        (
            String::from_utf8(udp("1", "1")).unwrap().replace(":1,\"clock", ":2,\"clock").into_bytes(),
            "version 2",
        ),
    ];
    let (answers, sessions) = with_server(|receiver| {
        let answers: Vec<_> = attacks.iter().map(|(bytes, _)| answer_to(receiver, bytes)).collect();
        // A good sender is served after all of them.
        assert_eq!(udp::send(&receiver, &stream(5), &mut quiet).unwrap().reception.unique, 5);
        answers
    });
    for ((bytes, expected), answer) in attacks.iter().zip(&answers) {
        let sent = String::from_utf8_lossy(bytes);
        assert!(
            answer.contains("refused") && answer.contains(expected),
            "{expected:?} in {answer:?} to {sent:?}"
        );
    }
    assert_eq!(sessions.iter().filter(|session| session.outcome.is_err()).count(), attacks.len());
}

#[test]
fn a_sender_that_vanishes_ends_its_session() {
    let offer = concat!(
        r#"{"longwire":1,"clock":{"boot_id":"","time_namespace":""},"#,
        r#""test":{"udp":{"packets":9,"layer":"ip","quiet_ns":1}}}"#
    );
    let ((), sessions) = with_server(|receiver| {
        let answer = answer_to(receiver, format!("{offer}\n").as_bytes());
        assert!(answer.contains("\"ready\""), "{answer}");
        udp::send(&receiver, &stream(5), &mut quiet).unwrap();
    });
    assert!(matches!(sessions[0].outcome, Err(Error::Ended(_))) && sessions[1].outcome.is_ok());
}

#[test]
fn strangers_packets_do_not_count() {
    let (result, _) = with_server(|receiver| {
        // A relay that adds a packet of another flow, one too short, and one with a number out of range.
        let control = std::net::TcpListener::bind(LOOPBACK).unwrap();
        let data = UdpSocket::bind(LOOPBACK).unwrap();
        let relayed = Receiver {
            address: control.local_addr().unwrap(),
            data: Some(data.local_addr().unwrap()),
            patience: Duration::from_secs(30),
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                let (sender, _) = control.accept().unwrap();
                let receiver = TcpStream::connect(receiver.address).unwrap();
                stranger(&sender, &receiver, &data);
            });
            udp::send(&relayed, &stream(1), &mut quiet).unwrap()
        })
    });
    assert_eq!((result.reception.unique, result.reception.foreign, result.reception.received), (1, 3, 1));
}

fn stranger(sender: &TcpStream, receiver: &TcpStream, data: &UdpSocket) {
    hand_on(sender, receiver);
    let to = promised(&hand_on(receiver, sender));
    let mut packet = [0; 100];
    data.recv(&mut packet).unwrap();
    let ours = header::Header::read(&packet).unwrap();
    for bad in [header::Header { flow: !ours.flow, ..ours }, header::Header { sequence: 1, ..ours }] {
        let mut bytes = [0; 100];
        bad.write(&mut bytes);
        data.send_to(&bytes, to).unwrap();
    }
    data.send_to(&packet[..17], to).unwrap();
    data.send_to(&packet, to).unwrap();
    hand_on(sender, receiver);
    hand_on(receiver, sender);
}

/// A response can be thousands of times as large as its request: only the control connection's address gets
/// one.
#[test]
fn other_addresses_are_not_answered() {
    let ((), sessions) = with_server(|receiver| {
        let mut control = TcpStream::connect(receiver.address).unwrap();
        let hello = "{\"longwire\":1,\"clock\":{\"boot_id\":\"\",\"time_namespace\":\"\"},\
            \"test\":{\"request\":{\"transport\":\"udp\",\"request\":18,\"response\":60000}}}\n";
        control.write_all(hello.as_bytes()).unwrap();
        let mut lines = BufReader::new(control.try_clone().unwrap());
        let mut ready = String::new();
        lines.read_line(&mut ready).unwrap();
        let ready: serde_json::Value = serde_json::from_str(&ready).unwrap();
        let number = |name: &str| u32::try_from(ready["ready"][name].as_u64().unwrap()).unwrap();
        let to = SocketAddr::new(receiver.address.ip(), number("port") as u16);
        let ask = |from: &str, sequence: u32| {
            let socket = UdpSocket::bind(from).unwrap();
            let mut request = [0; 18];
            header::Header { flow: number("flow"), sequence, sent: 0 }.write(&mut request);
            socket.send_to(&request, to).unwrap();
            socket
        };
        let stranger = ask("127.0.0.2:0", 0);
        let peer = ask("127.0.0.1:0", 1);
        let mut response = vec![0; 65_000];
        assert_eq!(peer.recv(&mut response).unwrap(), 60_000);
        // The receiver has taken both by now, in the order in which they were sent.
        stranger.set_nonblocking(true).unwrap();
        assert_eq!(stranger.recv(&mut response).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        control.write_all(b"{\"sent\":1}\n").unwrap();
        lines.read_line(&mut String::new()).unwrap();
    });
    assert!(matches!(sessions[0].outcome, Ok(SessionOutcome::Requests(1))), "{sessions:?}");
}

#[test]
fn nobody_there_is_said_with_the_fix() {
    let unused = std::net::TcpListener::bind(LOOPBACK).unwrap().local_addr().unwrap();
    let error = udp::send(&Receiver::at(unused), &stream(1), &mut quiet).unwrap_err().to_string();
    assert!(error.contains(&unused.to_string()) && error.contains("longwire traffic receive"), "{error}");
}

#[test]
fn progress_is_told_and_can_stop() {
    let mut told = 0;
    let asked = UdpStream::new(SendingRate::PacketsPerSecond(100), Duration::from_secs(60));
    let (error, sessions) = with_server(|receiver| {
        let stop = &mut |progress: Progress| {
            told += 1;
            assert!(progress.elapsed_ns >= 500_000_000 && progress.total_ns == Some(60_000_000_000));
            ControlFlow::Break(())
        };
        udp::send(&receiver, &asked, stop).unwrap_err()
    });
    assert!(matches!(error, Error::Stopped) && told == 1);
    assert!(sessions[0].outcome.is_err());
}
