//! The end of an instance, as its clients see it.

use super::*;
use crate::remote::RemoteFiles;
use rcgen::{CertificateParams, KeyPair};
use std::net::TcpListener;

#[test]
fn an_instance_that_hangs_has_not_ended() {
    // The system takes its connections, and it says nothing.
    let hangs = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = CertificateParams::new(Vec::<String>::new()).unwrap();
    let own = own.self_signed(&KeyPair::generate().unwrap()).unwrap();
    let ca = std::env::temp_dir().join(format!("longwire-hangs-{}.pem", std::process::id()));
    std::fs::write(&ca, own.pem()).unwrap();
    let files = RemoteFiles { ca: Some(ca.clone()), ..RemoteFiles::default() };
    let url = format!("https://{}", hangs.local_addr().unwrap()).parse().unwrap();
    let client = Client::of_remote(RemoteInstance::new(url, &files).unwrap()).unwrap();
    std::fs::remove_file(ca).unwrap();
    let client = Client { patience: Duration::from_millis(1), ..client };
    assert!(!client.has_ended());
    drop(hangs);
    let client = Client { patience: ANSWER_TIME, ..client };
    assert!(client.has_ended());
}
