"""A real browser without a window: Debian's chromium, driven by selenium."""
import shutil

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.keys import Keys

OPTIONS = ('--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking',
           '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage', '--hide-scrollbars')


class NotHere(Exception):
    """There is no browser."""


class Browser:
    def __init__(self, folder):
        if not shutil.which('chromium') or not shutil.which('chromedriver'):
            raise NotHere('no chromium with its driver here')
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which('chromium')
        for word in (*OPTIONS, f'--user-data-dir={folder}'):
            options.add_argument(word)
        options.set_capability('goog:loggingPrefs', {'browser': 'ALL'})
        self.driver = webdriver.Chrome(service=Service(shutil.which('chromedriver')), options=options)

    def look(self, width, scheme='light'):
        """Sets the width of the page, and light or dark."""
        self.driver.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', {
            'width': width, 'height': 900, 'deviceScaleFactor': 1, 'mobile': False})
        self.driver.execute_cdp_cmd('Emulation.setEmulatedMedia', {
            'features': [{'name': 'prefers-color-scheme', 'value': scheme}]})

    def open(self, url):
        self.driver.get(url)

    def run(self, script, *args):
        return self.driver.execute_script(script, *args)

    def press(self, key):
        """Presses a key that selenium names, on what has the focus."""
        self.driver.switch_to.active_element.send_keys(getattr(Keys, key))

    def text(self):
        """The text that the page shows."""
        return self.run('return document.body.innerText')

    def rows(self, label):
        """The cells of the table with that label."""
        return self.run('''const table = document.querySelector(`table[aria-label="${arguments[0]}"]`);
            return table ? [...table.tBodies[0].rows].map((row) => [...row.cells].map((one) => one.textContent))
                : []''', label)

    def figures(self):
        """{title: number} of the boxes."""
        return self.run('''return Object.fromEntries([...document.querySelectorAll('.figure')].map((one) =>
            [one.querySelector('dt').textContent, one.querySelector('dd').textContent]))''')

    def errors(self):
        """The complaints of the browser since the last call, but for questions that came too soon: the page asks
        again."""
        messages = [entry['message'] for entry in self.driver.get_log('browser') if entry['level'] == 'SEVERE']
        return [message for message in messages if 'status of 429' not in message]

    def close(self):
        self.driver.quit()
