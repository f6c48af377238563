//! A separate test program, because the interrupt flag belongs to the whole process.

use longwire_rundir::{Lock, LockError, Patience, interrupt, on_wait, prepare};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

static SAID: OnceLock<Mutex<Sender<String>>> = OnceLock::new();

#[test]
fn a_user_who_wants_the_end_ends_the_waiting() {
    let (sender, said) = channel();
    SAID.set(Mutex::new(sender)).unwrap();
    on_wait(|text| SAID.get().unwrap().lock().unwrap().send(text.to_owned()).unwrap());
    let folder = std::env::temp_dir().join(format!("longwire-interrupt-{}", std::process::id()));
    prepare(&folder).unwrap();
    let path = folder.join("lock");
    let held = Lock::take(&path).unwrap().unwrap();
    let patience = Patience { limit: Duration::from_secs(600), interruptible: true };
    let waiting = std::thread::spawn({
        let path = path.clone();
        move || Lock::acquire(&path, patience)
    });
    let said = said.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(said.contains(&format!("waiting for process {}", std::process::id())), "{said}");
    interrupt();
    assert!(matches!(waiting.join().unwrap().unwrap_err(), LockError::Interrupted { .. }));
    drop(held);
    // A free lock is still acquired after an interrupt, because cleaning up needs it.
    drop(Lock::acquire(&path, patience).unwrap());
    std::fs::remove_dir_all(folder).unwrap();
}
