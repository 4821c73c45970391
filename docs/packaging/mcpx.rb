# A template of a Homebrew formula, to be put into a tap. VERSION and the sums come
# from a release's checksums.txt, HOME_URL from where releases are published.
class Mcpx < Formula
  desc "Stands between one agent and many MCP servers"
  homepage "HOME_URL"
  version "VERSION"
  license "MIT"

  on_macos do
    on_arm do
      url "HOME_URL/releases/download/vVERSION/mcpx_VERSION_darwin_arm64.tar.gz"
      sha256 "SUM_DARWIN_ARM64"
    end
    on_intel do
      url "HOME_URL/releases/download/vVERSION/mcpx_VERSION_darwin_amd64.tar.gz"
      sha256 "SUM_DARWIN_AMD64"
    end
  end
  on_linux do
    on_arm do
      url "HOME_URL/releases/download/vVERSION/mcpx_VERSION_linux_arm64.tar.gz"
      sha256 "SUM_LINUX_ARM64"
    end
    on_intel do
      url "HOME_URL/releases/download/vVERSION/mcpx_VERSION_linux_amd64.tar.gz"
      sha256 "SUM_LINUX_AMD64"
    end
  end

  def install
    bin.install "mcpx"
    bin.install_symlink bin/"mcpx" => "mcpx-sse"
    generate_completions_from_executable(bin/"mcpx", "completion")
    (man1/"mcpx.1").write Utils.safe_popen_read(bin/"mcpx", "man")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/mcpx --version")
  end
end
