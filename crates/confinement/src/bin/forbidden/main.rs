//! A process that confines itself as a core, or another process, and then does one thing: an action that it
//! must be refused, or its work.
//!
//! `forbidden ROLE|plain [LAYER,LAYER…] OUTSIDER ACTION` confines itself but for these layers, or not at
//! all, and does the action; OUTSIDER is the number of a process of the machine. It writes `ready` to
//! standard output before the action and `done`, `reached ERROR` or `failed ERROR` after it. `forbidden
//! list` prints the names and numbers of actions, `forbidden work COUNT` answers COUNT frames that come by
//! descriptor 3, `forbidden queue` makes the message queue that an action opens, and `forbidden no-queue
//! NUMBER` removes it. `forbidden apart LAYERS ACTION` does an action in a confined process that it starts
//! itself, and writes how it ended and the name of the host; `forbidden name-trial LAYERS` lets this action
//! name the host, in a place where nobody else sees it. `core-with-thread` and `core-in-old-way` are cores
//! that cannot be locked. `core-native` is a core that has kept to its own work before it was locked, and
//! `core-preparing` one that still does. `forbidden read FOLDER LAYERS PATH` confines itself as whoever
//! compiles, to that folder, and reads a file; `forbidden write` writes one. `forbidden take ROLE MEBIBYTES`
//! confines itself and asks for so much memory.

#![cfg_attr(not(target_os = "linux"), allow(unused))]
#![deny(unsafe_code)]

#[cfg(target_os = "linux")]
mod actions;
#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod ground;
#[cfg(target_os = "linux")]
mod work;

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("only Linux has layers of confinement");
}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    match run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("forbidden: {why}");
            std::process::ExitCode::FAILURE
        }
    }
}

#[cfg(target_os = "linux")]
fn run() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["say"] => println!("done"),
        ["say-user"] => println!("{}", rustix::process::geteuid().as_raw()),
        ["core-with-thread"] => {
            let _waits = std::thread::spawn(std::thread::park);
            confinement::lock(confinement::Role::Core, &[])?;
        }
        ["core-in-old-way"] => {
            let old = [libc::READ_IMPLIES_EXEC as u64, 0, 0, 0, 0, 0];
            calls::make(libc::SYS_personality, old).map_err(std::io::Error::from_raw_os_error)?;
            confinement::lock(confinement::Role::Core, &[])?;
        }
        ["name-trial", without] => {
            calls::hide()?;
            apart(without, "name-host")?;
        }
        ["apart", without, action] => apart(without, action)?,
        ["list"] => {
            for action in actions::ACTIONS {
                println!("{} {}", action.name, action.call);
            }
        }
        ["queue"] => println!("{}", calls::make_queue()?),
        ["no-queue", number] => calls::remove_queue(number.parse()?)?,
        ["work", count] => match work::work(count.parse()?)? {},
        ["read", folder, without, path] => {
            confinement::enter_to_read(folder.as_ref(), &layers(without)?)?.lock()?;
            println!("ready");
            // A thread has no more than the process.
            let path = (*path).to_owned();
            let read = std::thread::spawn(move || std::fs::read_to_string(path));
            match read.join().unwrap_or_else(|_| Err(std::io::ErrorKind::Other.into())) {
                Ok(text) => println!("read {text}"),
                Err(error) => println!("failed {}", error.raw_os_error().unwrap_or_default()),
            }
        }
        ["write", folder, without, path] => {
            confinement::enter_to_read(folder.as_ref(), &layers(without)?)?.lock()?;
            println!("ready");
            match std::fs::write(path, "written") {
                Ok(()) => println!("done"),
                Err(error) => println!("failed {}", error.raw_os_error().unwrap_or_default()),
            }
        }
        ["take", name, mebibytes] => {
            let bytes = mebibytes.parse::<usize>()? << 20;
            confinement::lock(role(name).ok_or("there is no such role")?, &[])?;
            let took = Vec::<u8>::new().try_reserve_exact(bytes);
            println!("{}", if took.is_ok() { "taken" } else { "refused" });
        }
        [mode, without, outsider, name] => {
            let without = layers(without)?;
            let (name_of_role, prepares, locks) = match *mode {
                "core-native" => ("core", true, true),
                "core-preparing" => ("core", true, false),
                other => (other, false, true),
            };
            let role = role(name_of_role);
            match (role, *mode) {
                (None, "plain") => calls::hide()?,
                (None, _) => return Err(format!("there is no role `{mode}`").into()),
                (Some(_), _) => {}
            }
            let ground = ground::Ground::new(outsider.parse()?)?;
            let act = choose(name, &ground)?;
            if let Some(role) = role {
                let entered = confinement::enter(role, &without)?;
                if prepares {
                    entered.keep_to_own_work()?;
                }
                if locks {
                    entered.lock()?;
                }
            }
            println!("ready");
            println!("{}", act());
        }
        _ => return Err("it is started by tests of this crate; see the head of its source".into()),
    }
    Ok(())
}

/// Does an action in a process of its own that has all layers but these, and writes how it ended and by which
/// name this process knows the host then.
#[cfg(target_os = "linux")]
fn apart(without: &str, action: &str) -> Result<(), Box<dyn std::error::Error>> {
    use std::os::fd::AsFd;
    let program = std::fs::File::open("/proc/self/exe")?;
    let (output, errors) = (std::io::stdout(), std::io::stderr());
    let arguments = ["forbidden", "core", without, "1", action].map(Into::into);
    let start = confinement::SeparateStart {
        program: program.as_fd(),
        arguments: &arguments,
        error_output: errors.as_fd(),
        descriptors: &[(output.as_fd(), 1)],
    };
    let end = confinement::separate(&start, confinement::Role::Core, &layers(without)?)?.wait()?;
    println!("{end:?} {}", rustix::system::uname().nodename().to_string_lossy());
    Ok(())
}

/// The role of this name.
#[cfg(target_os = "linux")]
fn role(name: &str) -> Option<confinement::Role> {
    confinement::Role::ALL.into_iter().find(|role| role.name() == name)
}

/// Reads names of layers with commas between them.
#[cfg(target_os = "linux")]
fn layers(names: &str) -> Result<Vec<confinement::Layer>, confinement::UnknownLayer> {
    names.split(',').filter(|name| !name.is_empty()).map(str::parse).collect()
}

/// Makes an action ready, so that doing it is its call and nothing else.
#[cfg(target_os = "linux")]
fn choose(name: &str, ground: &ground::Ground) -> Result<Box<dyn FnOnce() -> String>, String> {
    match name {
        #[cfg(target_arch = "x86_64")]
        "32-bit-call" => return Ok(Box::new(|| told(calls::make_32_bit(), &[]))),
        "make-thread" => return Ok(Box::new(make_thread)),
        "be-traced" => return Ok(Box::new(|| told(calls::be_traced(), &[]))),
        "execute-descriptor" => {
            let arguments = ground.words(&[ground.text("forbidden"), ground.text("say-user"), 0]);
            let (empty, none) = (ground.text(""), ground.words(&[0]));
            let call = [3, empty, arguments, none, libc::AT_EMPTY_PATH as u64, 0];
            return Ok(Box::new(move || told(calls::make(libc::SYS_execveat, call), &[])));
        }
        _ => {}
    }
    let action = actions::ACTIONS.iter().find(|action| action.name == name);
    let action = action.ok_or_else(|| format!("there is no action `{name}`"))?;
    let arguments = (action.arguments)(ground);
    Ok(Box::new(move || {
        let result = calls::make(action.call, arguments);
        if action.splits && result == Ok(0) {
            calls::end(0);
        }
        told(result, action.reached)
    }))
}

/// Makes a thread that makes some memory and ends.
#[cfg(target_os = "linux")]
fn make_thread() -> String {
    let thread = std::thread::Builder::new().name("forbidden".to_owned());
    let length = thread.spawn(|| vec![1u8; 1 << 20].len()).map(std::thread::JoinHandle::join);
    if matches!(length, Ok(Ok(1_048_576))) { "done".to_owned() } else { "failed".to_owned() }
}

/// What is written of an answer of Linux.
#[cfg(target_os = "linux")]
fn told(result: Result<i64, i32>, reached: &[i32]) -> String {
    match result {
        Ok(_) => "done".to_owned(),
        Err(error) if reached.contains(&error) => format!("reached {error}"),
        Err(error) => format!("failed {error}"),
    }
}
