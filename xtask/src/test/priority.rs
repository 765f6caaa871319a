//! Which commands come first where several want a processor.

use std::process::Command;

/// By how much a command yields to others (nice(1)): so much that these hardly wait for it, and so little
/// that it is not kept from running where they take all that there is.
const NICENESS: &str = "10";

/// Which come first.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Priority {
    Usual,
    /// Those that take most of all what others leave.
    Low,
}

impl Priority {
    /// The command at this priority, with all that it starts. What its input and output are is said to what
    /// is returned.
    pub(super) fn of(self, command: Command) -> Command {
        if self == Priority::Usual {
            return command;
        }
        let mut low = Command::new("nice");
        low.args(["-n", NICENESS]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => low.env(name, value),
                None => low.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            low.current_dir(folder);
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::Priority;
    use std::process::Command;

    #[test]
    fn a_command_of_low_priority_is_the_same_one_and_yields_to_others() {
        let shown = |priority: Priority| {
            let mut command = Command::new("sh");
            let script = "nice; echo $0 $SET ${HOME-none} $(pwd)";
            command.args(["-c", script, "word"]).env("SET", "set").env_remove("HOME").current_dir("/");
            let output = priority.of(command).output().expect("it starts");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let (niceness, rest) = text.split_once('\n').expect("two lines");
            assert_eq!(rest, "word set none /\n");
            niceness.parse::<i32>().expect("a number")
        };
        let usual = shown(Priority::Usual);
        assert_eq!(shown(Priority::Low), (usual + 10).min(19));
    }
}
