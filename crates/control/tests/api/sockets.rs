//! Sockets of instances: found, chosen, removed.

use crate::fake::Fake;
use crate::scratch::Scratch;
use longwire_control::{Client, ClientError, RowFilter, Server, StartError, list};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::Ordering;

#[test]
fn stop_reaches_the_instance() {
    let scratch = Scratch::new();
    let fake = Fake::named("demo");
    let server = Server::start(scratch.path(), fake.clone()).unwrap();
    let client = Client::connect(scratch.path(), None).unwrap();
    client.stop().unwrap();
    assert!(fake.stopped.load(Ordering::SeqCst));
    let path = server.path().to_path_buf();
    drop(server);
    assert!(!path.exists());
    assert!(matches!(client.stats(&RowFilter::default()), Err(ClientError::Silent { .. })));
    assert!(matches!(Client::connect(scratch.path(), None), Err(ClientError::NoneRunning(_))));
}

#[test]
fn of_several_instances_one_is_chosen() {
    let scratch = Scratch::new();
    let _a = Server::start(scratch.path(), Fake::named("lab-a")).unwrap();
    let _b = Server::start(scratch.path(), Fake::named("lab-b")).unwrap();
    let pid = std::process::id();
    let all = format!("lab-a-{pid}, lab-b-{pid}");
    assert_eq!(list(scratch.path()).unwrap().len(), 2);
    let error = |wanted| Client::connect(scratch.path(), wanted).unwrap_err().to_string();
    assert_eq!(error(None), format!("which instance? There are {all}: choose one with --instance"));
    assert_eq!(error(Some("lab-c")), format!("no instance \"lab-c\" is running; there are {all}"));
    assert!(error(Some(&pid.to_string())).starts_with("which instance?"));
    for wanted in ["lab-b".to_string(), format!("lab-b-{pid}")] {
        let client = Client::connect(scratch.path(), Some(&wanted)).unwrap();
        assert_eq!(client.instance().unwrap().name, "lab-b");
    }
    let again = Server::start(scratch.path(), Fake::named("lab-a"));
    assert!(matches!(again, Err(StartError::Socket { .. })), "its socket is in use");
    assert_eq!(list(scratch.path()).unwrap().len(), 2);
}

#[test]
fn sockets_of_the_dead_are_removed_and_others_left() {
    let scratch = Scratch::new();
    assert!(list(scratch.path()).unwrap().is_empty(), "a missing directory has no instances");
    let server = Server::start(scratch.path(), Fake::named("alive")).unwrap();
    let dead = scratch.path().join("dead-1.sock");
    drop(UnixListener::bind(&dead).unwrap());
    let other = scratch.path().join("notes.txt");
    std::fs::write(&other, "not a socket").unwrap();
    let found = list(scratch.path()).unwrap();
    assert_eq!(found.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(), ["alive"]);
    assert!(!dead.exists() && other.exists() && server.path().exists());
}

#[test]
fn only_the_user_can_open_sockets() {
    let scratch = Scratch::new();
    let server = Server::start(scratch.path(), Fake::named("demo")).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(server.path()), mode(scratch.path())), (0o600, 0o700));
    let link = scratch.path().join("link");
    symlink(scratch.path(), &link).unwrap();
    let error = Server::start(&link, Fake::named("demo")).unwrap_err().to_string();
    assert!(error.contains("LONGWIRE_RUN_DIR"), "{error}");
    let shared = format!("{}-shared", scratch.path().display());
    std::fs::write(&shared, "").unwrap();
    let error = Server::start_for_group(scratch.path(), 0, Fake::named("demo")).unwrap_err().to_string();
    std::fs::remove_file(&shared).unwrap();
    assert!(error.contains("not a directory of this user; --group needs root"), "{error}");
    // A directory that others may write to is neither used for serving nor trusted.
    std::fs::set_permissions(scratch.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    for error in [
        Server::start(scratch.path(), Fake::named("other")).unwrap_err().to_string(),
        list(scratch.path()).unwrap_err().to_string(),
        Client::connect(scratch.path(), None).unwrap_err().to_string(),
    ] {
        assert!(error.contains("open to other users"), "{error}");
    }
    assert_eq!(mode(scratch.path()), 0o777, "its mode is not ours to change");
}

#[test]
fn whether_an_instance_has_ended_is_said_at_once_even_if_it_hangs() {
    let scratch = Scratch::new();
    std::fs::create_dir_all(scratch.path()).unwrap();
    let socket = scratch.path().join("hung-7.sock");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // No connection is accepted, until the queue is full.
    let (listener, waiting) = runtime.block_on(async {
        let listener = tokio::net::UnixSocket::new_stream().unwrap();
        listener.bind(&socket).unwrap();
        let listener = listener.listen(1).unwrap();
        let mut waiting = Vec::new();
        let full = loop {
            match tokio::net::UnixStream::connect(&socket).await {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), std::io::ErrorKind::WouldBlock);
        (listener, waiting)
    });
    let client = Client::connect(scratch.path(), None).unwrap();
    let (said, heard) = std::sync::mpsc::channel();
    // A client that waited for it would hang.
    std::thread::spawn(move || {
        let has_ended = client.has_ended();
        said.send((has_ended, client)).is_ok()
    });
    let (has_ended, client) = heard.recv_timeout(std::time::Duration::from_secs(100)).unwrap();
    assert!(!has_ended);
    drop((listener, waiting));
    assert!(client.has_ended(), "nobody listens");
    std::fs::remove_file(&socket).unwrap();
    assert!(client.has_ended(), "it is gone");
}
