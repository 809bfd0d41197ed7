"""A headless Chromium for the console's tests: Debian's, driven by its python3-selenium."""
import os
import shutil
import sys


def need_selenium():
    """Debian's selenium belongs to Debian's Python: goes on in that one if this is another."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        if os.path.realpath(sys.executable) != os.path.realpath("/usr/bin/python3") and os.path.exists("/usr/bin/python3"):
            os.execv("/usr/bin/python3", ["/usr/bin/python3", "-B", *sys.argv])
        print("python3-selenium is missing: scripts/install --test installs it", file=sys.stderr)
        sys.exit(77)
    if shutil.which("chromedriver") is None or shutil.which("chromium") is None:
        print("chromium or chromium-driver is missing: scripts/install --test installs them", file=sys.stderr)
        sys.exit(77)


class Browser:
    def __init__(self, width, height, dark):
        from selenium import webdriver
        from selenium.webdriver.chrome.options import Options
        from selenium.webdriver.chrome.service import Service
        options = Options()
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                         "--force-color-profile=srgb", f"--window-size={width},{height}"):
            options.add_argument(argument)
        if dark:
            options.add_argument("--blink-settings=preferredColorScheme=0")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.driver.set_script_timeout(20)
        # Headless windows count their frame in: the page itself shall have that size.
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height,
                                                                          "deviceScaleFactor": 1, "mobile": False})

    def open(self, url, before=None):
        """`before`: JavaScript that runs before the page's own."""
        if before:
            self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": before})
        self.driver.get(url)

    def ask(self, expression, *arguments):
        return self.driver.execute_script("const {model, view, frames} = terraneConsole; return " + expression, *arguments)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def keys(self, text, selector="body"):
        from selenium.webdriver.common.by import By
        self.driver.find_element(By.CSS_SELECTOR, selector).send_keys(text)

    def text(self, selector):
        return self.driver.execute_script("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def faults(self):
        """What the page has complained of; a coordinator that is away is no fault of the page."""
        return [line["message"] for line in self.driver.get_log("browser")
                if line["level"] == "SEVERE" and "ERR_CONNECTION" not in line["message"] and
                "ERR_EMPTY_RESPONSE" not in line["message"] and "Failed to fetch" not in line["message"]]

    def picture(self, path):
        check = self.driver.save_screenshot(path)
        return check and os.path.getsize(path)

    def quit(self):
        self.driver.quit()
