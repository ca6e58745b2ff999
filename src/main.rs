fn main() -> std::process::ExitCode {
    handback::cli::main()
}
