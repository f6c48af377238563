//! TLS on TCP: who is let in, and what tokens and certificates let them do.

mod fake;
mod scratch;

use fake::Fake;
use longwire_control::{
    Client, ClientError, Kind, RemoteError, RemoteFiles, RemoteInstance, Tls, TlsError, TlsFiles, Tokens,
    Web, WebAddress, WebServer,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use scratch::Scratch;
use sha2::{Digest, Sha256};
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// A folder with certificates.
struct Certificates {
    scratch: Scratch,
}

type Authority = CertifiedIssuer<'static, KeyPair>;

impl Certificates {
    /// That of a server on this machine, and its authority "ca".
    fn of_server() -> (Self, Authority) {
        let scratch = Scratch::new();
        fs::create_dir_all(scratch.path()).unwrap();
        let certificates = Self { scratch };
        let ca = certificates.authority("ca");
        certificates.signed(&ca, "server", &["127.0.0.1"]);
        (certificates, ca)
    }

    fn path(&self, file: &str) -> PathBuf {
        self.scratch.path().join(file)
    }

    fn write(&self, file: &str, text: &str) -> PathBuf {
        fs::write(self.path(file), text).unwrap();
        fs::set_permissions(self.path(file), Permissions::from_mode(0o600)).unwrap();
        self.path(file)
    }

    /// An authority, whose certificate is in NAME.pem.
    fn authority(&self, name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        self.write(&format!("{name}.pem"), &authority.pem());
        authority
    }

    /// A certificate of these names in FILE.pem with its key in FILE.key, and its fingerprint.
    fn signed(&self, authority: &Authority, file: &str, names: &[&str]) -> String {
        let names: Vec<_> = names.iter().map(|name| name.to_string()).collect();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, authority).unwrap();
        self.write(&format!("{file}.pem"), &certificate.pem());
        self.write(&format!("{file}.key"), &key.serialize_pem());
        let digits =
            Sha256::digest(certificate.der()).iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>();
        format!("sha256:{}", digits.join(":"))
    }

    fn files(&self, clients: Option<&str>) -> TlsFiles {
        let clients = clients.map(|file| self.path(file));
        TlsFiles { certificate: self.path("server.pem"), key: self.path("server.key"), clients }
    }

    /// A server with these tokens that lets in clients of the authority `ca`, if one is named.
    fn web(&self, tokens: &str, clients: Option<&str>) -> Web {
        let tokens = Tokens::read(&self.write("tokens", tokens)).unwrap();
        let tls = Tls::read(self.files(clients)).unwrap();
        let address = WebAddress::At("127.0.0.1:0".parse().unwrap());
        Web { address, tokens: Some(Arc::new(tokens)), tls: Some(Arc::new(tls)), is_cleartext_safe: false }
    }

    /// A client that trusts the authority in this file, with the certificate in FILE.pem, if any.
    fn client(&self, server: &WebServer, ca: &str, own: Option<&str>, token: Option<&str>) -> Client {
        let files = RemoteFiles {
            ca: Some(self.path(ca)),
            certificate: own.map(|file| self.path(&format!("{file}.pem"))),
            key: own.map(|file| self.path(&format!("{file}.key"))),
            token: token.map(|token| self.write("token", token)),
        };
        let url = format!("https://{}", server.address()).parse().unwrap();
        Client::of_remote(RemoteInstance::new(url, &files).unwrap()).unwrap()
    }
}

fn set(client: &Client) -> Result<(), ClientError> {
    client.set(Some(Kind::Link), "up", &[("delay".into(), "7 ms".into())]).map(drop)
}

fn refused<T>(result: Result<T, ClientError>) -> u16 {
    match result {
        Err(ClientError::Refused(problem)) => problem.status,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("not refused"),
    }
}

/// Why a client is not served at all.
fn silent<T>(result: Result<T, ClientError>) -> String {
    match result {
        Err(ClientError::Silent { reason, .. }) => reason,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("served"),
    }
}

#[test]
fn certificates_of_clients_have_scopes() {
    let (certificates, ca) = Certificates::of_server();
    let viewer = certificates.signed(&ca, "viewer", &[]);
    certificates.signed(&ca, "driver", &["driver.example"]);
    certificates.signed(&ca, "unlisted", &["unlisted.example"]);
    let token = "t".repeat(32);
    let tokens = format!("read {viewer}\nsteer name:driver.example\ninstall {token}\n");
    let web = certificates.web(&tokens, Some("ca.pem"));
    let server = WebServer::start(web.clone(), Fake::named("demo")).unwrap();
    let client = |own, token| certificates.client(&server, "ca.pem", own, token);

    let viewer = client(Some("viewer"), None);
    assert_eq!(viewer.instance().unwrap().name, "demo");
    assert_eq!(refused(set(&viewer)), 403);
    let driver = client(Some("driver"), None);
    assert!(set(&driver).is_ok());
    assert_eq!(refused(driver.stop()), 403);
    assert_eq!(refused(client(Some("unlisted"), None).instance()), 403);
    // Whoever has a certificate and bears a token may do what either allows.
    assert!(client(Some("unlisted"), Some(&token)).stop().is_ok());

    let reason = silent(client(None, Some(&token)).instance());
    assert!(reason.to_lowercase().contains("certificate"), "{reason}");
    let stranger = certificates.authority("stranger");
    certificates.signed(&stranger, "impostor", &["driver.example"]);
    silent(client(Some("impostor"), None).instance());
    let distrustful = certificates.client(&server, "stranger.pem", Some("driver"), None);
    assert!(silent(distrustful.instance()).contains("invalid peer certificate"));

    // A scope that is taken away is gone with the next request.
    certificates.write("tokens", &format!("install {token}\n"));
    web.read_again().unwrap();
    assert_eq!(refused(set(&driver)), 403);
}

#[test]
fn tokens_cross_tls_without_certificates_of_clients() {
    let (certificates, _) = Certificates::of_server();
    let token = "t".repeat(32);
    let web = certificates.web(&format!("steer {token}\n"), None);
    let server = WebServer::start(web.clone(), Fake::named("demo")).unwrap();
    assert_eq!(refused(certificates.client(&server, "ca.pem", None, None).instance()), 401);
    let of_another = "o".repeat(32);
    for (token, what) in [(None, "wants a token"), (Some(&*of_another), "is none of this service's")] {
        let error = certificates.client(&server, "ca.pem", None, token).instance().unwrap_err().to_string();
        assert!(error.contains(what) && error.ends_with("--token FILE"), "{error}");
    }
    assert!(set(&certificates.client(&server, "ca.pem", None, Some(&token))).is_ok());

    // A certificate that was replaced is shown to the next connection.
    let other = certificates.authority("other");
    certificates.signed(&other, "server", &["127.0.0.1"]);
    web.read_again().unwrap();
    assert!(
        silent(certificates.client(&server, "ca.pem", None, Some(&token)).instance()).contains("certificate")
    );
    assert!(set(&certificates.client(&server, "other.pem", None, Some(&token))).is_ok());
    // One of another name is not believed.
    certificates.signed(&other, "server", &["lab.example"]);
    web.read_again().unwrap();
    let reason = silent(certificates.client(&server, "other.pem", None, Some(&token)).instance());
    assert!(reason.contains("not valid for name"), "{reason}");
    // Nonsense leaves what was there.
    certificates.write("server.pem", "no certificate");
    assert!(web.read_again().is_err());
}

#[test]
fn who_speaks_no_tls_or_nothing_harms_nobody() {
    let (certificates, _) = Certificates::of_server();
    let token = "t".repeat(32);
    let web = certificates.web(&format!("steer {token}\n"), None);
    let server = WebServer::start(web, Fake::named("demo")).unwrap();
    let mut plain = TcpStream::connect(server.address()).unwrap();
    plain.write_all(b"GET /v1/instance HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    plain.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("HTTPS only"), "{answer}");
    let url = format!("http://{}", server.address()).parse().unwrap();
    let plain = Client::of_remote(RemoteInstance::new(url, &RemoteFiles::default()).unwrap()).unwrap();
    let fix = format!("it may serve TLS: write https://{}", server.address());
    assert!(silent(plain.instance()).ends_with(&fix));

    // One says nothing, one begins a handshake, one sends what is none.
    let beginnings: [&[u8]; 3] = [&[], &[22, 3, 1, 2, 0, 1], &[22, 0, 0, 0, 0, 0, 0, 0, 0]];
    let mut slow = beginnings.map(|bytes| {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(bytes).unwrap();
        stream
    });
    let client = certificates.client(&server, "ca.pem", None, Some(&token));
    assert_eq!(client.instance().unwrap().name, "demo", "others are served meanwhile");
    for stream in &mut slow {
        // They end, with an alert or without.
        let _ = stream.read_to_end(&mut Vec::new());
    }
    assert!(set(&client).is_ok());
}

/// A path is judged as it is understood.
#[test]
fn no_spelling_of_a_path_lets_a_smaller_scope_install() {
    let (certificates, ca) = Certificates::of_server();
    certificates.signed(&ca, "driver", &["driver"]);
    let web = certificates.web("steer name:driver\n", Some("ca.pem"));
    let server = WebServer::start(web, Fake::named("demo")).unwrap();
    let change = |path: &str| {
        let request = format!(
            "PATCH {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: 17\r\n\r\n{{\"delay\": \"7 ms\"}}",
            server.address()
        );
        browse(&certificates, &server, "driver", &request)
    };
    assert_eq!(change("/v1/%6cinks/up"), 200);
    for path in ["/v1/forwarders/core%2Fseen", "/v1/%66orwarders/core%2Fseen", "/v1/forwarder%73/core%2Fseen"]
    {
        assert_eq!(change(path), 403, "{path}");
    }
}

#[test]
fn a_name_without_a_kind_is_looked_up_in_those_that_a_scope_may_change() {
    let (certificates, _) = Certificates::of_server();
    let tokens = ["r", "s"].map(|letter| letter.repeat(32));
    let web = certificates.web(&format!("read {}\nsteer {}\n", tokens[0], tokens[1]), None);
    let server = WebServer::start(web, Fake::named("demo")).unwrap();
    let set = |token: &str, name: &str, key: &str| {
        let client = certificates.client(&server, "ca.pem", None, Some(token));
        client.set(None, name, &[(key.into(), "2".into())])
    };
    assert_eq!(set(&tokens[1], "nic", "queues").unwrap().kind, Kind::Port);
    let error = set(&tokens[1], "vidoe", "rate").unwrap_err().to_string();
    assert_eq!(error, "there is no link or other object \"vidoe\"; did you mean the source \"video\"?");
    // It could be installed.
    assert_eq!(refused(set(&tokens[1], "core/seen", "program")), 403);
    assert_eq!(refused(set(&tokens[0], "up", "rate")), 403);
}

/// The status of a request by a client with the certificate in FILE.pem, as a browser would send it.
fn browse(certificates: &Certificates, server: &WebServer, own: &str, request: &str) -> u16 {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificates.path("ca.pem")).unwrap()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let chain = vec![CertificateDer::from_pem_file(certificates.path(&format!("{own}.pem"))).unwrap()];
    let key = PrivateKeyDer::from_pem_file(certificates.path(&format!("{own}.key"))).unwrap();
    let config = config.with_root_certificates(roots).with_client_auth_cert(chain, key).unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(connection, TcpStream::connect(server.address()).unwrap());
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).unwrap();
    answer.split(' ').nth(1).unwrap_or_else(|| panic!("{answer}")).parse().unwrap()
}

#[test]
fn a_foreign_page_changes_nothing_by_the_certificate_of_its_reader() {
    let (certificates, ca) = Certificates::of_server();
    certificates.signed(&ca, "driver", &["driver"]);
    let web = certificates.web("install name:driver\n", Some("ca.pem"));
    let server = WebServer::start(web, Fake::named("demo")).unwrap();
    let host = server.address();
    let change = |headers: &str| {
        let request = format!(
            "PATCH /v1/links/up HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\
             Content-Type: application/json\r\nContent-Length: 17\r\n\r\n{{\"delay\": \"7 ms\"}}"
        );
        browse(&certificates, &server, "driver", &request)
    };
    assert_eq!(change(""), 200, "a program");
    assert_eq!(change(&format!("Origin: https://{host}\r\nSec-Fetch-Site: same-origin\r\n")), 200);
    assert_eq!(change("Origin: https://elsewhere.example\r\n"), 403);
    assert_eq!(change(&format!("Origin: http://{host}\r\n")), 403, "a page that came without TLS");
    assert_eq!(change("Sec-Fetch-Site: cross-site\r\n"), 403);
}

#[test]
fn files_that_are_wrong_are_named() {
    let (certificates, ca) = Certificates::of_server();
    certificates.signed(&ca, "other", &["127.0.0.1"]);
    let read = |files: TlsFiles| Tls::read(files).unwrap_err().to_string();
    let right = certificates.files(Some("ca.pem"));
    assert!(Tls::read(right.clone()).is_ok());
    let missing = read(TlsFiles { certificate: certificates.path("none.pem"), ..right.clone() });
    assert!(missing.contains("none.pem") && missing.contains("No such file"), "{missing}");
    let key = read(TlsFiles { key: certificates.path("server.pem"), ..right.clone() });
    assert!(key.contains("no key in PEM"), "{key}");
    let certificate = read(TlsFiles { certificate: certificates.path("server.key"), ..right.clone() });
    assert!(certificate.contains("no certificate in PEM"), "{certificate}");
    let pair = read(TlsFiles { key: certificates.path("other.key"), ..right.clone() });
    assert!(pair.contains("other.key"), "{pair}");
    fs::set_permissions(certificates.path("server.key"), Permissions::from_mode(0o644)).unwrap();
    assert!(matches!(Tls::read(right), Err(TlsError::Open { mode: 0o644, .. })));

    let remote = |url: &str, files: &RemoteFiles| match RemoteInstance::new(url.parse().unwrap(), files) {
        Err(RemoteError::Missing(what)) => what,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("complete"),
    };
    let some = |file: &str| Some(certificates.path(file));
    let without_token = RemoteFiles { token: some("none"), ..RemoteFiles::default() };
    let unread = RemoteInstance::new("http://127.0.0.1:1".parse().unwrap(), &without_token);
    let unread = unread.unwrap_err().to_string();
    assert!(unread.starts_with("can't read the token in ") && !unread.contains("TLS"), "{unread}");
    assert!(remote("https://127.0.0.1:1", &RemoteFiles::default()).contains("--ca"));
    let alone = RemoteFiles { ca: some("ca.pem"), certificate: some("other.pem"), ..RemoteFiles::default() };
    assert!(remote("https://127.0.0.1:1", &alone).contains("--key"));
    assert!(remote("http://127.0.0.1:1", &alone).contains("https"));
}
