//! A gateway without ports: how it is asked, and how it ends in every case.

use super::*;
use crate::control::{Asked, ControlError, ask};
use crate::limits::{CLIENTS, RELOAD, SILENT};
use crate::review::{Policies, PolicyReview, ReloadWish};
use crate::routing::RoutingSettings;
use engine::live::Loaded;
use exec::{BackendKind, load};
use messages::listening;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

fn clock() -> Arc<dyn Clock> {
    Arc::new(MachineClock)
}

fn reader() -> ConfigReader {
    ConfigReader {
        config: Arc::new(|| Ok(config(2))),
        load: Arc::new(with_policies),
        review: Arc::new(|_| PolicyReview::default()),
        provides: || 0,
    }
}

fn config(workers: u16) -> Config {
    let text = format!("program = \"p.rav\"\nworkers = {workers}\n[[port]]\ninterface = \"x\"\n");
    Config::read(&text, Path::new("")).expect("is right")
}

fn routing() -> Routing {
    let program = loaded(&config(1)).expect("loads").program;
    Routing::new(
        &program,
        &RoutingSettings::default(),
        Hosts::default(),
        Remarks::to(|_| ()).expect("a thread"),
    )
    .expect("the kernel answers")
}

fn with_policies(config: &Config) -> Result<(Loaded, Policies), String> {
    Ok((loaded(config)?, Policies::default()))
}

fn loaded(config: &Config) -> Result<Loaded, String> {
    let options = lang::pipeline::CompileOptions::default();
    let compiled = lang::pipeline::compile("p.rav", "start stage all() { flood }", &|_| None, &options);
    let program = compiled.program.ok_or("does not compile")?;
    let backend = |_| load(&program, BackendKind::Native, 0, 0).map_err(|error| error.to_string());
    let backends = (0..config.workers.count).map(backend).collect::<Result<_, _>>()?;
    Ok(Loaded {
        program: Arc::new(program),
        sources: Arc::new(compiled.sources),
        backends,
        schedule: None,
        steering: Vec::new(),
    })
}

/// Runs a gateway, and what a visitor does meanwhile; both end.
fn visited(visit: impl FnOnce(&Path, &Remote) + Send) {
    visited_with(reader(), RELOAD, visit);
}

/// The same with what is read and loaded by this, in so long at most.
fn visited_with(reader: ConfigReader, reload: Duration, visit: impl FnOnce(&Path, &Remote) + Send) {
    let directory = tempfile::tempdir().expect("a directory");
    let path: PathBuf = directory.path().join("control.sock");
    let listening = listening::listen(&path).expect("nothing is there");
    let (crew, remote) = live::workers(vec![Vec::new(), Vec::new()], &clock()).expect("descriptors");
    let mut server = ControlServer::new(remote.clone(), reader, config(2), Vec::new(), routing());
    server.reloading.limit = reload;
    // Nobody asks for metrics, and yet all ends.
    server.metrics = Some(metrics::listen(([127, 0, 0, 1], 0).into()).expect("a port"));
    let server = Arc::new(server);
    let generations = loaded(&config(2)).expect("loads").generations(0, 1);
    thread::scope(|scope| {
        let visitor = scope.spawn(|| {
            // A visitor that finds a fault ends the gateway too: else nobody would hear of it.
            let _stopping = Stopping(&remote);
            visit(&path, &remote);
        });
        let ended = attend(&server, &listening.listener, || live::run(crew, generations, &remote, &[]));
        assert!(ended.failure.is_none() && ended.generations.len() == 2, "{:?}", ended.failure);
        visitor.join().expect("the visitor found everything as it should be");
    });
}

/// Stops the gateway when it goes.
struct Stopping<'a>(&'a Remote);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Asks until a client can be taken.
fn ask_until_answered(path: &Path) -> serde_json::Value {
    let begin = Instant::now();
    loop {
        let error = match ask(path, Asked::Picture) {
            Ok(view) => return view,
            Err(error) => error.to_string(),
        };
        // The gateway may have hung up before the question was sent.
        let turned_away = ["16 clients", "broke off"].map(|text| error.contains(text));
        assert!(turned_away.contains(&true) && begin.elapsed() < Duration::from_secs(60), "{error}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// What the gateway says next, and nothing once it has hung up.
fn line(stream: &UnixStream) -> String {
    let mut line = String::new();
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("can be set");
    BufReader::new(stream).read_line(&mut line).expect("an answer, or the end");
    line
}

#[test]
fn questions_are_answered_and_stop_ends() {
    visited(|path, _| {
        let view = ask(path, Asked::Picture).expect("answers");
        assert_eq!(view["picture"]["generation"], 1);
        let reloaded = ask(path, Asked::Reload(ReloadWish::default())).expect("answers");
        assert!(reloaded["done"].as_str().is_some_and(|text| text.contains("took over")), "{reloaded}");
        let view = ask(path, Asked::Picture).expect("answers");
        assert_eq!((&view["picture"]["generation"], &view["picture"]["workers"]), (&2.into(), &2.into()));
        let measured = ask(path, Asked::Measure { seconds: 0.05 }).expect("answers");
        assert_eq!(measured["measure"]["workers"], 2);
        assert!(matches!(ask(path, Asked::Measure { seconds: 1e9 }), Err(ControlError::Refused(_))));
        assert_eq!(ask(path, Asked::Stop).expect("answers")["done"], "stopping");
    });
}

#[test]
fn a_silent_client_or_a_socket_that_is_gone_does_not_keep_a_gateway_from_ending() {
    visited(|path, remote| {
        let silent = UnixStream::connect(path).expect("is taken");
        let mut halfway = UnixStream::connect(path).expect("is taken");
        halfway.write_all(b"{\"ask\":").expect("is read");
        // Once a third one is answered, the first two have been taken.
        ask(path, Asked::Picture).expect("answers");
        fs::remove_file(path).expect("is there");
        remote.stop();
        assert_eq!((line(&silent), line(&halfway)), (String::new(), String::new()));
    });
}

#[test]
fn garbage_gets_an_error_and_the_end() {
    visited(|path, remote| {
        let mut garbage = UnixStream::connect(path).expect("is taken");
        garbage.write_all(b"\xff\0{]\n{\"ask\":\"stop\"}\n").expect("is read");
        assert!(line(&garbage).starts_with("{\"error\":\"not a question"));
        // The question behind it was not read.
        ask(path, Asked::Picture).expect("runs on");
        remote.stop();
    });
}

#[test]
fn the_seventeenth_client_is_told_to_come_again() {
    visited(|path, remote| {
        let seats: Vec<_> = (0..16).map(|_| UnixStream::connect(path).expect("is taken")).collect();
        let late = UnixStream::connect(path).expect("is taken");
        assert!(line(&late).starts_with("{\"error\":\"16 clients"));
        drop(seats);
        // A seat is free as soon as the gateway has seen one go.
        ask_until_answered(path);
        remote.stop();
    });
}

#[test]
fn a_loop_that_breaks_leaves_nobody_waiting() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("control.sock");
    let listening = listening::listen(&path).expect("nothing is there");
    let (crew, remote) = live::workers(vec![Vec::new()], &clock()).expect("descriptors");
    drop(crew);
    let server = Arc::new(ControlServer::new(remote, reader(), config(2), Vec::new(), routing()));
    let client = UnixStream::connect(&path).expect("is taken");
    let broken = catch_unwind(AssertUnwindSafe(|| {
        attend(&server, &listening.listener, || {
            // As nobody runs the loop, nobody can be asked.
            assert!(matches!(ask(&path, Asked::Picture), Err(ControlError::Refused(_))));
            panic!("a defect")
        })
    }));
    assert!(broken.is_err());
    assert_eq!(line(&client), "");
}

#[test]
fn a_reload_that_does_not_end_is_given_up_and_keeps_nobody_from_anything() {
    // What is read as long as this side is there: as from a pipe that nobody writes to.
    let (never, read) = mpsc::channel::<()>();
    let read = std::sync::Mutex::new(read);
    let stuck = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let is_stuck = stuck.clone();
    let load = move |config: &Config| {
        if is_stuck.load(std::sync::atomic::Ordering::Relaxed) {
            let _ = read.lock().map(|read| read.recv());
        }
        with_policies(config)
    };
    let reader = ConfigReader {
        config: Arc::new(|| Ok(config(2))),
        load: Arc::new(load),
        review: Arc::new(|_| PolicyReview::default()),
        provides: || 0,
    };
    visited_with(reader, Duration::from_millis(200), |path, _| {
        thread::scope(|scope| {
            let first = scope.spawn(|| ask(path, Asked::Reload(ReloadWish::default())));
            for _ in 0..3 {
                let view = ask(path, Asked::Picture).expect("answers meanwhile");
                assert_eq!(view["picture"]["generation"], 1);
            }
            let error = first.join().expect("is answered").expect_err("took too long").to_string();
            assert!(error.contains("was given up") && error.contains("nothing has changed"), "{error}");
        });
        // The next one does not wait for it.
        stuck.store(false, std::sync::atomic::Ordering::Relaxed);
        let reloaded = ask(path, Asked::Reload(ReloadWish::default())).expect("answers");
        assert!(reloaded["done"].as_str().is_some_and(|text| text.contains("took over")), "{reloaded}");
        // So many may be stuck, and no more.
        stuck.store(true, std::sync::atomic::Ordering::Relaxed);
        ask(path, Asked::Reload(ReloadWish::default())).expect_err("took too long");
        let error = ask(path, Asked::Reload(ReloadWish::default())).expect_err("too many").to_string();
        assert!(error.contains("reloads that were given up are still being read"), "{error}");
        ask(path, Asked::Stop).expect("it ends all the same");
    });
    drop(never);
}

#[test]
fn who_is_silent_makes_room_for_who_asks() {
    visited(|path, remote| {
        let silent: Vec<_> = (0..CLIENTS).map(|_| UnixStream::connect(path).expect("is taken")).collect();
        // Each byte of a question that does not come to its end is no question.
        let mut halfway = silent[1].try_clone().expect("a descriptor");
        thread::sleep(SILENT + Duration::from_millis(50));
        halfway.write_all(b"{").expect("is read");
        for _ in 0..2 {
            // On a busy machine the gateway may have begun to listen to the silent ones later than they
            // connected.
            let view = ask_until_answered(path);
            assert_eq!(view["picture"]["generation"], 1);
        }
        let is_gone = |stream: &&UnixStream| {
            stream.set_nonblocking(true).expect("can be set");
            matches!((&**stream).read(&mut [0]), Ok(0))
        };
        let gone = silent.iter().filter(is_gone).count();
        assert!((1..=2).contains(&gone), "{gone} were hung up on, for two questions");
        remote.stop();
    });
}

/// The core of one worker does not exist; the other one learned something.
#[test]
fn what_packets_learned_is_kept_when_the_packet_loop_fails() {
    const TEXT: &str = "
table seen: exact(u8) { capacity 8 }
start stage all() {
    match seen[1] { some _ => {}, none => {} }
    flood
}
";
    let options = lang::pipeline::CompileOptions::default();
    let compiled = lang::pipeline::compile("p.rav", TEXT, &|_| None, &options);
    let program = Arc::new(compiled.program.expect("compiles"));
    let made =
        || (0..2).map(|_| load(&program, BackendKind::Native, 0, 0).expect("loads")).collect::<Vec<_>>();
    let mut backends = made();
    backends[0].learn(0, &ir::Entry::exact(&[7], &[]), clock().program()).expect("room");
    let loaded = Loaded {
        program: program.clone(),
        sources: Arc::new(compiled.sources),
        backends,
        schedule: None,
        steering: Vec::new(),
    };
    let (crew, remote) = live::workers(vec![Vec::new(), Vec::new()], &clock()).expect("descriptors");
    let mut ended = live::run(crew, loaded.generations(0, 1), &remote, &[u16::MAX]);
    let failure = ended.failure.take().expect("there is no such core").to_string();
    assert!(failure.contains("worker 1 cannot stay on core 65535"), "{failure}");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("state");
    assert_eq!(kept(&path, &ended.generations, 2, clock().program()), None);
    let mut anew = made();
    let returned = snapshot::read(&path, &program, &mut anew, &Moment::now(clock().program()));
    assert_eq!(returned.expect("right").expect("there").tables, [("seen".to_owned(), 1, 0)]);
    // A worker without a thread has left nothing, so there is no whole state.
    let said = kept(&path, &ended.generations[1..], 2, clock().program()).expect("lost");
    assert!(said.contains("what packets learned is lost"), "{said}");
}
